"""When the jobs of a run worked, waited and paid, by turn, from its journal."""
