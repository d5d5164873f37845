"""The OpenStack driver: nova carries out the steps, and the driver reads the results from nova alone.

`driver.py` implements the driver, cordons and fences. `server_steps.py` carries out the steps of machines.
`decisions.py` decides what comes next, and `attempts.py` whether a request may be sent. `inventory.py` lists
the cloud. Only `compute_api.py` uses openstacksdk.
"""
