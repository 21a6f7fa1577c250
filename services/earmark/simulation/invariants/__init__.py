"""What must hold whatever a scenario expects: small pure functions, one idea a module.

Each yields Broken values; when they are asked and what is forgiven is earmark.simulation.watchdog's.
"""
