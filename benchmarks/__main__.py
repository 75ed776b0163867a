"""Run every benchmark and print one table each."""

from benchmarks import fair_reference_laws, whole_processes

if __name__ == "__main__":
    fair_reference_laws.run()
    whole_processes.run()
