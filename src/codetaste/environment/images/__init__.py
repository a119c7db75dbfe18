"""The images of instances: names, what an engine has, and building the runtime image."""
