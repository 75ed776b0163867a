/* Search, sorting and paging for every table with the class "searchable". The plain table is complete without it.
   Optional attributes of the table: data-page-length (rows a page, -1 for all). */
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.searchable")) {
    table.removeAttribute("border");
    const length = Number(table.dataset.pageLength || 25);
    new DataTable(table, {
      order: [],
      pageLength: length,
      lengthMenu: [10, 25, 50, { label: "all", value: -1 }],
      autoWidth: false,
      layout: { topStart: "search", topEnd: "pageLength", bottomStart: "info", bottomEnd: "paging" },
      language: {
        search: "Search:",
        lengthMenu: "_MENU_ rows a page",
        info: "Rows _START_ to _END_ of _TOTAL_",
        infoEmpty: "No rows",
        infoFiltered: "(out of _MAX_)",
        zeroRecords: "No row matches the search.",
      },
    });
  }
});
