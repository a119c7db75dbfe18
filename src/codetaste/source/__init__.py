"""Source code as data: git, archives, trees and patches, and the origin of R and R∘X*."""
