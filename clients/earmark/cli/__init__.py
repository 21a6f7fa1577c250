"""The `earmark` command. Each command is a module that is imported when it runs, so that the command starts fast.

Not here: any decision about pods or devices; the services and the simulation make them.
"""
