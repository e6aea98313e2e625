// SPDX-License-Identifier: Apache-2.0
// Exchange between the two ends of a connected probe: round trips one after the other, then bulk
// one way; the receiver compares every byte. Throws Failure. One thread.
#pragma once

#include "agent/probe_program/connection.h"
#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {

// Serves the accepting end; returns when the other end has finished.
void Serve(Connection& connection, const Wishes& wishes);
// Runs the connecting end and fills in the results.
void Measure(Connection& connection, const Wishes& wishes, Measured& measured);

}  // namespace rocegw::probe
