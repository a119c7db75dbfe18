"""The corpus of examples: pure method-level refactorings of RefactoringMiner's oracle (Appendix F)."""
