# SPDX-License-Identifier: Apache-2.0
"""Queries of panels that have nothing to show in the scenarios, and why. At most one in twenty. Of alerts there are none."""

# (uid of the dashboard, title of the panel, legend)
SILENT_PANELS = {
    ("rocegw-control-plane", "Addresses refused", "{{reason}}"): "no host of the scenarios names another one's addresses",
    ("rocegw-channels", "Half-open ones ended", "{{node}}"): "only when all numbers of channels are taken",
    ("rocegw-channels", "Half-open ones ended", "{{node}} to prove their address first"): "only when many channels are half open",
    ("rocegw-gateway", "Programs' faults", "{{node}} refused work requests"): "the client library lets none through",
    ("rocegw-gateway", "Bytes by way", "{{node}} device (GPU)"): "no host of the scenarios has a GPU",
    ("rocegw-gateway", "Operations by way", "{{node}} device (GPU)"): "no host of the scenarios has a GPU",
    ("rocegw-gateway", "The network takes nothing", "{{node}}"): "the taps of the scenarios take everything",
    ("rocegw-gateway", "The network takes nothing", "{{node}} for programs' memory"): "no program of the scenarios has memory that blocks",
    ("rocegw-transport", "Suspicious packets", "{{node}} IP ID far from others"): "one damaged packet in 65,536 passes the CRC",
}
