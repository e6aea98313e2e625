// SPDX-License-Identifier: Apache-2.0
// A client of a group of replicas, which asks the next replica when one does not answer. One
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/kv_store/session.h"

namespace kv {

class Client {
 public:
  // A request is tried for this time, at one replica after the other.
  static constexpr Milliseconds kLimit{30'000};

  Client(std::vector<Place> places, bool fallback)
      : places_(std::move(places)), fallback_(fallback) {}

  // Returns the reply of a replica that has a majority; nullopt: none had one.
  std::optional<Message> Ask(const Message& request);

 private:
  const std::vector<Place> places_;
  const bool fallback_;
  size_t at_ = 0;
  std::unique_ptr<Session> session_;
};

}  // namespace kv
