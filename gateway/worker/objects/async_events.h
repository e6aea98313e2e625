// SPDX-License-Identifier: Apache-2.0
// Asynchronous events of queue pairs and their queues, on their way to the programs. Belongs to one
// worker.
#pragma once

#include "gateway/worker/control/control_sender.h"
#include "gateway/worker/objects/qp_table.h"

namespace rocegw::worker {

class AsyncEvents {
 public:
  // The arguments must outlive the object.
  AsyncEvents(QpTable& qps, ControlSender& control) : qps_(qps), control_(control) {}

  void Raise(const transport::QpContext& qp, verbs::AsyncEvent event);
  void RaiseLimitReached(const verbs::SrqConfig& srq);

 private:
  QpTable& qps_;
  ControlSender& control_;
};

}  // namespace rocegw::worker
