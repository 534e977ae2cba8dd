"""The notebooks as a user has them: executed in a kernel, and seen in JupyterLab."""
