// SPDX-License-Identifier: Apache-2.0
// Measurement of the network beside RDMA, between the two ends of a connected probe: datagrams with
// a DSCP and an ECN mark that the receiver counts, round trips and bulk over TCP, and the
// difference of both clocks. The ends agree by messages of the RDMA connection. A network that lets
// no TCP or UDP through is a result. Throws Failure where the RDMA connection breaks. One thread.
#pragma once

#include "agent/probe_program/connection.h"
#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {

// Serves the accepting end.
void ServePlain(Connection& connection, const Wishes& wishes);
// Runs the connecting end. `address`: of the other end, as text.
PlainPath MeasurePlain(Connection& connection, const std::string& address, const Wishes& wishes);

}  // namespace rocegw::probe
