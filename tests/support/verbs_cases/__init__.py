# SPDX-License-Identifier: Apache-2.0
"""Cases that run verbs programs on two hosts, whatever the hosts are: the interop and the end-to-end suite share them."""
