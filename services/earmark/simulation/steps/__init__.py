"""The steps of a timeline: one module a step, registered in earmark.simulation.steps.registry.

A step says how it is read from a file and what it does on the stage. What the stage is: earmark.simulation.stage.
"""
