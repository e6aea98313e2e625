// SPDX-License-Identifier: Apache-2.0
// Clients that write through whichever controller answers, each its own objects, and remember what
// was acknowledged. An object is a number: 0 is absent, n is present with n in a field. A write
// that is not answered is tried again at another controller under the same request_id, until it is.
// A thread each.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/chaos/event_log.h"
#include "tests/support/random.h"

namespace rocegw::testing::chaos {

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

// What an object is, after all that is known.
struct Register {
  uint64_t acknowledged = 0;
  uint64_t attempted = 0;  // differs: the last write was never answered, either may hold
};

// Number of the object at a controller, or why it did not say.
grpc::Status ReadObject(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                        uint64_t& number);

class Client {
 public:
  // number: 0, 1 ..., for its objects' names. agents: pools are placed on some of them.
  Client(size_t number, uint64_t seed, const Channels& channels, size_t agents, EventLog& log);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Ends what it does; then the rest may be read.
  void Stop();
  const std::map<std::string, Register>& objects() const { return objects_; }
  // request_id of each write that was acknowledged.
  const std::vector<std::string>& acknowledged() const { return acknowledged_; }
  // What must not be: "" if nothing.
  const std::string& problem() const { return problem_; }
  uint64_t attempts() const { return attempts_; }
  uint64_t reads() const { return reads_; }

 private:
  void Run();
  void WriteOne();
  grpc::Status Try(const std::string& name, uint64_t value, const std::string& request_id);
  void CheckRead(const std::string& name);
  // False: it is time to end.
  bool Pause(std::chrono::milliseconds time);
  void Fail(const std::string& what);

  const size_t number_;
  Random random_;
  const Channels& channels_;
  const size_t agents_;
  EventLog& log_;
  std::map<std::string, Register> objects_;
  std::vector<std::string> acknowledged_;
  std::string problem_;
  uint64_t next_value_ = 1;
  uint64_t attempts_ = 0;
  uint64_t reads_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::testing::chaos
