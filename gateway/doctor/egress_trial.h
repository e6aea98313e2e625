// SPDX-License-Identifier: Apache-2.0
// Test if a program of another user can send RoCEv2 packets from this host.
#pragma once

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Sends one byte to UDP 4791 of the loopback address as the user "nobody". Afterwards the calling
// thread has its own user again. Never blocks.
EgressGuard TryEgress();

}  // namespace rocegw::doctor
