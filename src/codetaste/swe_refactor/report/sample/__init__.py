"""The stratified sample of instances by executable lines (§4.4)."""
