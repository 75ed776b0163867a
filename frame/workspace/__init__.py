"""The workspace of a study: profiles, artefacts with their provenance, and what is stale."""
