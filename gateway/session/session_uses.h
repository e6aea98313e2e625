// SPDX-License-Identifier: Apache-2.0
// Objects of the session server that every session uses. They outlive the sessions.
#pragma once

namespace rocegw::session {

class Captures;
class CmBinding;
class ReadyReserves;
struct Services;

struct SessionUses {
  Services& services;
  CmBinding& cm;
  const ReadyReserves& reserves;
  Captures& captures;
};

}  // namespace rocegw::session
