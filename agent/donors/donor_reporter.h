// SPDX-License-Identifier: Apache-2.0
// Reports the donors of this host to the controller, and brings them its orders. Created, called
// and destroyed on its loop, which outlives it.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/donors/donor_counters.h"
#include "agent/donors/donor_folder.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/donors.pb.h"

namespace rocegw::agent {

class DonorReporter {
 public:
  static constexpr Duration kLook = Seconds(1);
  // A donor is reported at least so often, and at once when it has changed notably.
  static constexpr Duration kReport = Seconds(5);
  // A host that had donors says so often that it has none: the controller expects a report each 10
  // seconds.
  static constexpr Duration kReportNone = Seconds(9);

  // `gateway`: "gateways/G". `channel`: called for each report.
  DonorReporter(ControlLoop& loop, DonorFolder& folder, std::string gateway,
                std::function<std::shared_ptr<grpc::Channel>()> channel, DonorCounters& counters);
  ~DonorReporter();
  DonorReporter(const DonorReporter&) = delete;
  DonorReporter& operator=(const DonorReporter&) = delete;

 private:
  void Look();
  void Report(const std::map<std::string, far::Announcement>& donors);
  void Take(const fleet::v1::ReportDonorsResponse& response);

  ControlLoop& loop_;
  DonorFolder& folder_;
  const std::string gateway_;
  const std::function<std::shared_ptr<grpc::Channel>()> channel_;
  DonorCounters& counters_;
  ControlLoop::TimerId timer_ = 0;
  bool asking_ = false;
  bool reported_none_ = false;  // the controller knows that there are none
  TimePoint report_at_;
  std::string reported_;  // notable parts of the last report
  std::string last_problem_;
  std::map<std::string, std::string> refusals_;  // logged, by name
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Returns the report of the donors.
fleet::v1::ReportDonorsRequest ReportOf(const std::string& gateway,
                                        const std::map<std::string, far::Announcement>& donors);
// Returns the orders as a donor reads them.
far::DonorOrders OrdersOf(const fleet::v1::DonorOrder& order);

}  // namespace rocegw::agent
