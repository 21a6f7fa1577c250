"""The scheduling framework as a service: queue, node cache, nominator, scheduling and binding cycle, node plugins.

It knows no word of DRA: whatever a remote plugin is about comes from its Describe. Who has to go is not decided here
(earmark.preemption).
"""
