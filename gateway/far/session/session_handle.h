// SPDX-License-Identifier: Apache-2.0
// The session behind the handle of rocegw_memory.h, for the files that implement its calls.
#pragma once

#include <memory>

#include "gateway/far/session/session.h"

struct rocegw_memory_session {
  std::unique_ptr<rocegw::far::Session> session;
};
