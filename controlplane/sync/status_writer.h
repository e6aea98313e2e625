// SPDX-License-Identifier: Apache-2.0
// Writer of objects' statuses to the store, many per transaction and each object at most once per
// interval: of faster changes only the newest is written. A status is dropped if its object does
// not exist. Owns a thread; any thread may call Set. Destroyed before its store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controlplane/model/resource_name.h"
#include "controlplane/store/store.h"

namespace rocegw::sync {

class StatusWriter {
 public:
  explicit StatusWriter(store::Store& store,
                        std::chrono::milliseconds interval = std::chrono::milliseconds(200));
  // Writes the rest, if the store is reachable.
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // `value`: a serialized object with only its status.
  void Set(const model::ResourceName& name, std::string value);
  // Waits until everything set before was written or dropped.
  void Flush();

 private:
  using Batch = std::vector<std::pair<std::string, std::pair<std::string, std::string>>>;
  void Run();
  // Returns false if the store was unreachable; try again.
  bool Write(const Batch& batch);

  store::Store& store_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable written_;
  // By status key: intent key and value.
  std::map<std::string, std::pair<std::string, std::string>> dirty_;
  bool busy_ = false;
  bool hurry_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::sync
