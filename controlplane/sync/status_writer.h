// SPDX-License-Identifier: Apache-2.0
// Brings statuses of objects into the store, many in a transaction and each object at most once per
// interval: of what changes faster only the newest state is written. A status never makes an
// object: it is dropped when its object is gone. Owns a thread; any thread may call Set. Goes
// before its store.
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
  // Writes what is left, if the store can be reached.
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // `value`: a serialized object that has nothing but its status.
  void Set(const model::ResourceName& name, std::string value);
  // Waits until all that was set before is in the store, or was dropped.
  void Flush();

 private:
  using Batch = std::vector<std::pair<std::string, std::pair<std::string, std::string>>>;
  void Run();
  // False: the store could not be reached; try again.
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
