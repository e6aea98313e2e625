# SPDX-License-Identifier: Apache-2.0
"""What has nothing to show in the scenarios, and why. At most one in twenty."""

# (uid of the dashboard, title of the panel, legend)
SILENT_PANELS = {
    ("rocegw-control-plane", "Addresses refused", "{{reason}}"): "no host of the scenarios names another one's addresses",
    ("rocegw-channels", "Half-open ones ended", "{{node}}"): "only when all numbers of channels are taken",
    ("rocegw-gateway", "Programs' faults", "{{node}} refused work requests"): "the client library lets none through",
    ("rocegw-gateway", "The network takes nothing", "{{node}}"): "the taps of the scenarios take everything",
    ("rocegw-transport", "Suspicious packets", "{{node}} IP ID far from others"): "one damaged packet in 65,536 passes the CRC",
}

SILENT_ALERTS = {
    "RocegwGatewayNotReady": "a gateway is not ready only while it starts or stops",
    "RocegwGatewayDropsPackets": "needs workers that do not keep up; here the receive buffer is full before",
    "RocegwControllerNotReady": "a store that answers cannot be kept from being followed from outside",
    "RocegwAuthorityEnds": "authorities are made for ten years",
    "RocegwVersionsApart": "there is one version of the programs",
    "RocegwSetUpBudgetBurns": "set-up takes less than 5 ms",
}
