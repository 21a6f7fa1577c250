"""Scenario files played in virtual time: all services in one process on the embedded API in memory.

Here: reading scenarios, playing them, checking what must hold, telling what happened. Not here: any decision about pods
or devices; the services are those of production, composed by their own build().
"""
