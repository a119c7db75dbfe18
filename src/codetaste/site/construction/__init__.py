"""How the benchmark was made: mining, discovery of rules, environments."""
