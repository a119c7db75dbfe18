"""CodeBLEU: how near a piece of code is to the human's, by words, syntax and data flow (Ren et al. 2020)."""
