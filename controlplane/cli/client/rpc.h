// SPDX-License-Identifier: Apache-2.0
// Calls to a controller or gateway by method name, with messages of any type, so that one piece of
// code serves all kinds of objects. After Connect any thread may call, also concurrently; a call
// blocks at most until its deadline. A refusal becomes text from the server's details
// (google.rpc.ErrorInfo, BadRequest).
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

// Server to call: a unix socket, or an address with TLS.
struct Endpoint {
  std::string what = "controller";  // or "gateway"; for texts
  std::string socket;               // path; empty: `address`
  std::string address;              // "HOST:PORT"
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  bool proxy = false;       // use the environment's proxy
  std::string server_name;  // name in the server's certificate; empty: the host of the address

  std::string Text() const { return socket.empty() ? address : socket; }
};

class Rpc {
 public:
  Rpc(Endpoint endpoint, std::chrono::milliseconds timeout);
  ~Rpc();
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  // Finds the reason if the server cannot be reached; gRPC says only "unavailable".
  CallResult Connect();

  // `method`: "/rocegw.admin.v1.Pools/GetPool". `timeout` 0: that of the constructor.
  CallResult Call(const std::string& method, const google::protobuf::Message& request,
                  google::protobuf::Message& response,
                  std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  // Reads a server stream: calls on_message for each message in `response`. The stream ends when
  // on_message returns false or `enough` returns true, which is also checked periodically.
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
