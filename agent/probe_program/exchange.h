// SPDX-License-Identifier: Apache-2.0
// What the two ends of a probe do once they are connected: messages there and back, one after the
// other, then bulk one way, every byte compared by who receives it. Throws Failure. One thread.
#pragma once

#include "agent/probe_program/connection.h"
#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {

// Of the end that was connected to; returns when the other one has all it wanted.
void Serve(Connection& connection, const Wishes& wishes);
// Fills in what is measured.
void Measure(Connection& connection, const Wishes& wishes, Measured& measured);

}  // namespace rocegw::probe
