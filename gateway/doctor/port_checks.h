// SPDX-License-Identifier: Apache-2.0
// Checks of the network: UDP port 4791, and each port's link, MTU, buffers, offloads, neighbours.
// Pure functions; docs/operate/doctor.md lists their findings.
#pragma once

#include "gateway/doctor/facts.h"
#include "proto/rules/finding.h"

namespace rocegw::doctor {

using rules::Diagnosis;

Diagnosis CheckUdpPort(const Facts& facts);
Diagnosis CheckLink(const Facts& facts, const PortFacts& port);
Diagnosis CheckPathMtu(const Facts& facts, const PortFacts& port);
Diagnosis CheckAddresses(const Facts& facts, const PortFacts& port);
Diagnosis CheckReceiveBuffer(const Facts& facts, const PortFacts& port);
Diagnosis CheckOffloads(const Facts& facts, const PortFacts& port);
Diagnosis CheckNeighbours(const Facts& facts, const PortFacts& port);

}  // namespace rocegw::doctor
