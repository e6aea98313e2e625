// SPDX-License-Identifier: Apache-2.0
// Preflight of a migration: each node's agent is connected and runs the plan's adapter, the adapter
// has every call that the plan needs, and the inventory is the planned one. Decides nothing about
// time: the caller asks and brings answers. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migrations/node_answers.h"

namespace rocegw::migrations {

class Preflight {
 public:
  // Questions at a time.
  static constexpr size_t kMostInFlight = 32;

  explicit Preflight(const migration::Plan& plan) : plan_(plan) {}

  struct Question {
    Purpose purpose = Purpose::kHello;
    uint32_t node = 0;
  };
  // Returns the next question to ask now; nullopt: wait for answers, or it is over.
  std::optional<Question> Next();
  void OnAnswer(const Arrived& arrived);
  void OnUnreachable(uint32_t node);
  // Returns the result once every answer is there.
  std::optional<migration::PreflightResult> Result() const;

 private:
  void Complain(uint32_t node, const std::string& text);

  const migration::Plan& plan_;
  uint32_t next_ = 0;
  size_t in_flight_ = 0;
  bool inventory_asked_ = false;
  bool inventory_read_ = false;
  size_t problems_ = 0;
  std::string first_problem_;
};

// Returns the calls that a plan may need, by its class of system.
std::vector<std::string> CallsFor(const migration::Plan& plan);

}  // namespace rocegw::migrations
