"""The scheduling queue: active, backoff and unschedulable pods, in-flight events, hints (upstream A16).

Pure: time comes in as seconds, and nothing here waits or calls out.
"""
