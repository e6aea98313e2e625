// SPDX-License-Identifier: Apache-2.0
// All that the agent does for donors: their folder, their reports, and the questions of programs.
// Created, called and destroyed on its loop, which outlives it.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/donors/donor_desk.h"
#include "agent/donors/donor_folder.h"
#include "agent/donors/donor_reporter.h"

namespace rocegw::agent {

class DonorOffice {
 public:
  // `folder`: donors_dir; empty: nothing is done. `channel`: to the controller, for each call.
  DonorOffice(ControlLoop& loop, const std::string& folder, std::string gateway,
              std::function<std::shared_ptr<grpc::Channel>()> channel, DonorCounters& counters);
  ~DonorOffice();
  DonorOffice(const DonorOffice&) = delete;
  DonorOffice& operator=(const DonorOffice&) = delete;

 private:
  void Find(const far::DonorQuestion& question, DonorDesk::Answer answer);

  ControlLoop& loop_;
  const std::string gateway_;
  const std::function<std::shared_ptr<grpc::Channel>()> channel_;
  DonorFolder folder_;
  std::optional<DonorReporter> reporter_;
  std::optional<DonorDesk> desk_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
