"""Source code as data: git objects, archives, patches, and where R and R∘X* come from."""
