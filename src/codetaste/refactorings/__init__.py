"""RefactoringMiner as a service: the refactorings between two versions of code, and their purity."""
