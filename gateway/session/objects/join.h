// SPDX-License-Identifier: Apache-2.0
// Handle whose last copy runs a function when it is destroyed: an end that several answers await.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace rocegw::session {

// Released when the last copy is destroyed.
using Join = std::shared_ptr<void>;

// Returns a handle; `done` runs when all copies of it are destroyed, at once if none was made.
inline Join JoinThen(std::function<void()> done) {
  return {nullptr, [done = std::move(done)](void*) { done(); }};
}

}  // namespace rocegw::session
