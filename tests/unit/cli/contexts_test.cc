// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/contexts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "tests/unit/service/fake_source.h"

namespace rocegw::cli {
namespace {

class ContextsTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ROCEGW_CONFIG", file_.c_str(), 1);
    for (const char* name : {"ROCEGW_CONTEXT", "ROCEGW_CONTROLLER", "ROCEGW_GRPC_SOCKET"}) {
      unsetenv(name);
    }
  }
  void TearDown() override { unsetenv("ROCEGW_CONFIG"); }

  service::TestDirectory directory_;
  std::string file_ = directory_.File("config.yaml");
};

TEST_F(ContextsTest, WrittenAndRead_AreTheSameAndPrivate) {
  Contexts contexts;
  contexts.current = "prod";
  contexts.places["prod"] = {.address = "ctl:7471",
                             .ca_file = "ca.crt",
                             .certificate_file = "a.crt",
                             .key_file = "/keys/a.key",
                             .server_name = "controller"};
  contexts.places["here"] = {.socket = "/run/x.sock"};
  ASSERT_TRUE(WriteContexts(file_, contexts).ok());
  struct stat info {};
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  Contexts read;
  ASSERT_TRUE(ReadContexts(file_, read).ok());
  EXPECT_EQ(read.current, "prod");
  EXPECT_EQ(read.places.size(), 2u);

  // Paths are relative to the file.
  Endpoint endpoint;
  ASSERT_TRUE(ChooseEndpoint({}, endpoint).ok());
  EXPECT_EQ(endpoint.address, "ctl:7471");
  EXPECT_EQ(endpoint.ca_file, directory_.File("ca.crt"));
  EXPECT_EQ(endpoint.key_file, "/keys/a.key");
  ASSERT_TRUE(ChooseEndpoint({.context = "here"}, endpoint = {}).ok());
  EXPECT_EQ(endpoint.socket, "/run/x.sock");
  EXPECT_EQ(ChooseEndpoint({.context = "nowhere"}, endpoint = {}).code, kUsage);
}

TEST_F(ContextsTest, Choice_TheNearerGoesFirst) {
  Contexts contexts;
  contexts.current = "prod";
  contexts.places["prod"] = {.socket = "/prod.sock"};
  ASSERT_TRUE(WriteContexts(file_, contexts).ok());
  Endpoint endpoint;
  ASSERT_TRUE(ChooseEndpoint({.local = true}, endpoint).ok());
  EXPECT_EQ(endpoint.what, "gateway");
  EXPECT_EQ(endpoint.socket, kGatewaySocket);
  ASSERT_TRUE(ChooseEndpoint({.gateway_socket = "/g.sock"}, endpoint = {}).ok());
  EXPECT_EQ(endpoint.socket, "/g.sock");
  setenv("ROCEGW_CONTROLLER", "unix:/env.sock", 1);
  ASSERT_TRUE(ChooseEndpoint({}, endpoint = {}).ok());
  EXPECT_EQ(endpoint.socket, "/env.sock");
  ASSERT_TRUE(ChooseEndpoint({.context = "prod"}, endpoint = {}).ok());
  EXPECT_EQ(endpoint.socket, "/prod.sock");
  ASSERT_TRUE(ChooseEndpoint({.controller = "unix:/x.sock"}, endpoint = {}).ok());
  EXPECT_EQ(endpoint.socket, "/x.sock");
  unsetenv("ROCEGW_CONTROLLER");
  // Without certificates an address is of no use.
  EXPECT_EQ(ChooseEndpoint({.controller = "host:7471"}, endpoint = {}).code, kUsage);
}

TEST_F(ContextsTest, BrokenFile_IsToldWithItsName) {
  for (const char* text :
       {"contexts: {a: {addres: 'x:1'}}", "contexts: {a: {}}", "- x", "a: [", "contexts: {a: 5}"}) {
    std::ofstream(file_) << text;
    Contexts contexts;
    const CallResult result = ReadContexts(file_, contexts);
    EXPECT_EQ(result.code, kUsage) << text;
    EXPECT_TRUE(result.text.starts_with(file_)) << result.text;
  }
}

}  // namespace
}  // namespace rocegw::cli
