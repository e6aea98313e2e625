// SPDX-License-Identifier: Apache-2.0
// Calls to a controller or a gateway by the method's name, with messages of any type, so that one
// piece of code serves all kinds of objects. Once it is connected any thread may call, also at the
// same time; every call blocks at most until its deadline. Refusals become text from the details
// that the server sends (google.rpc.ErrorInfo, BadRequest).
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

// Who is called: a unix socket, or an address with TLS.
struct Endpoint {
  std::string what = "controller";  // or "gateway": for messages
  std::string socket;               // path; empty: `address`
  std::string address;              // "HOST:PORT"
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  bool proxy = false;       // the environment's
  std::string server_name;  // in the server's certificate; empty: the host of the address

  std::string Text() const { return socket.empty() ? address : socket; }
};

class Rpc {
 public:
  Rpc(Endpoint endpoint, std::chrono::milliseconds timeout);
  ~Rpc();
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  // Finds out why nobody answers before gRPC says only "unavailable".
  CallResult Connect();

  // method: "/rocegw.admin.v1.Pools/GetPool". timeout 0: that of the construction.
  CallResult Call(const std::string& method, const google::protobuf::Message& request,
                  google::protobuf::Message& response,
                  std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  // A server's stream: on_message is called with each message in `response`; false ends it, and so
  // does `enough`, which is asked now and then also while nothing comes.
  CallResult Stream(const std::string& method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, const std::function<bool()>& on_message,
                    const std::function<bool()>& enough = nullptr);

  const Endpoint& endpoint() const { return endpoint_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  struct Channel;
  Endpoint endpoint_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace rocegw::cli
