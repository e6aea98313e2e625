# SPDX-License-Identifier: Apache-2.0
"""Parts that the adapters of this project share. The folder lies beside the adapters; it holds no adapter itself."""
