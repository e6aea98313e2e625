// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/timestamp.h"

#include <google/protobuf/util/time_util.h>

#include <chrono>

namespace rocegw::model {

google::protobuf::Timestamp Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace rocegw::model
