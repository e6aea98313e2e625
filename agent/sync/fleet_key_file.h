// SPDX-License-Identifier: Apache-2.0
// File with the keys by which gateways know one another, for the gateway (its gateways.key_file):
// asks the controller for the keys and replaces the file when they changed. Without an answer the
// file stays. Created, called and destroyed on the agent's loop, which outlives it.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

class FleetKeyFile {
 public:
  // `path` empty: does nothing. `gateway`: "gateways/G". `channel`: called for each question.
  // `taken`: called with the time after each answer, in seconds since 1970.
  FleetKeyFile(ControlLoop& loop, std::string path, std::string gateway,
               std::function<std::shared_ptr<grpc::Channel>()> channel,
               std::function<void(int64_t)> taken);
  ~FleetKeyFile();
  FleetKeyFile(const FleetKeyFile&) = delete;
  FleetKeyFile& operator=(const FleetKeyFile&) = delete;

  // Returns the file's text; EINVAL: the answer is no set of keys.
  static StatusOr<std::string> TextOf(const fleet::v1::GetFleetKeysResponse& answer);

 private:
  void Ask();
  void AskAfter(Duration pause);
  Status Take(const fleet::v1::GetFleetKeysResponse& answer);

  ControlLoop& loop_;
  const std::string path_;
  const std::string gateway_;
  const std::function<std::shared_ptr<grpc::Channel>()> channel_;
  const std::function<void(int64_t)> taken_;
  std::string last_problem_;  // logged once
  ControlLoop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
