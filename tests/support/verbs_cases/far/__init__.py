# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory; donors of memory and mounted files for whoever needs them."""
