// SPDX-License-Identifier: Apache-2.0
// A flood filter as a program of the kernel (classic BPF, socket(7) SO_ATTACH_FILTER), which drops
// datagrams before they take a place in the socket's buffer. Pure.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "gateway/port/flood_filter.h"

namespace rocegw::port {

// Returns the program for a UDP socket of IPv4 and IPv6; empty if every datagram passes. Datagrams
// that end before their headers do are dropped. At most 4096 instructions, the kernel's limit.
std::vector<sock_filter> FloodProgram(const FloodFilter& filter);

}  // namespace rocegw::port
