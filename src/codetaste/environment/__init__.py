"""Container environments of instances: images, scripts, and what a container needs to install packages."""
