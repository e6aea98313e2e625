// SPDX-License-Identifier: Apache-2.0
// A disk that is full, and one that has changed bits of the store: said clearly, no crash, and it
// goes on with room.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/e2e/controller/small_disk.h"

namespace rocegw::testing {
namespace {

grpc::Status CreateTenant(const ControllerHost& host, const std::string& id) {
  admin::v1::CreateTenantRequest request;
  request.mutable_tenant()->set_name("tenants/" + id);
  request.mutable_tenant()->mutable_spec()->set_display_name(std::string(60, 'x'));
  types::v1::Tenant response;
  return admin::v1::Tenants::NewStub(host.AdminChannel())
      ->CreateTenant(ContextFor().get(), request, &response);
}

grpc::Status ListTenants(const ControllerHost& host) {
  admin::v1::ListTenantsResponse response;
  return admin::v1::Tenants::NewStub(host.AdminChannel())
      ->ListTenants(ContextFor().get(), {}, &response);
}

TEST(Disk, ThatIsFull_RefusesWritesWithAReasonAndGoesOnWithRoom) {
  ControllerHost host;
  const SmallDisk disk(host.State(""));
  ASSERT_TRUE(disk.mounted()) << "needs the right to mount";
  host.Start();
  ASSERT_TRUE(CreateTenant(host, "before").ok());
  disk.Fill();
  grpc::Status refused;
  for (int i = 0; i < 200 && refused.ok(); ++i)
    refused = CreateTenant(host, "t" + std::to_string(i));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error_message().find("full"), std::string::npos) << refused.error_message();
  EXPECT_TRUE(ListTenants(host).ok()) << "reads go on";
  disk.MakeRoom();
  const grpc::Status after = CreateTenant(host, "after");
  EXPECT_TRUE(after.ok()) << after.error_message();
  EXPECT_EQ(host.Stop(), 0);
  host.Start();
  EXPECT_EQ(CreateTenant(host, "after").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(host.Stop(), 0);
}

TEST(Disk, ThatIsFullAtTheFirstStart_IsSaid) {
  ControllerHost host;
  const SmallDisk disk(host.State(""));
  ASSERT_TRUE(disk.mounted()) << "needs the right to mount";
  disk.Fill();
  const std::string said = host.Fail();
  EXPECT_TRUE(said.find("No space left on device") != std::string::npos ||
              said.find("full") != std::string::npos)
      << said;
  EXPECT_NE(said.find(host.File("state")), std::string::npos) << "which file: " << said;
  disk.MakeRoom();
  host.Start();
  EXPECT_TRUE(CreateTenant(host, "a").ok());
  EXPECT_EQ(host.Stop(), 0);
}

// Bits that lie in free space or in a value change nothing that SQLite could see.
TEST(Disk, ThatChangedBitsOfTheStore_IsSaidOrHarmless) {
  ControllerHost host;
  host.Start();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(CreateTenant(host, "t" + std::to_string(i)).ok());
  ASSERT_EQ(host.Stop(), 0);
  const std::string database = host.State("fleet.db");
  const std::string copy = host.File("fleet.copy");
  std::filesystem::copy_file(database, copy);
  const auto size = std::filesystem::file_size(copy);
  int refused = 0;
  for (uintmax_t at = 0; at < size; at += size / 24 + 1) {
    std::filesystem::copy_file(copy, database, std::filesystem::copy_options::overwrite_existing);
    {
      // The beginning of a page, where SQLite keeps what the page is.
      std::fstream file(database, std::ios::in | std::ios::out | std::ios::binary);
      const auto place = static_cast<std::streamoff>(at / 4096 * 4096);
      file.seekg(place);
      const int byte = file.get();
      file.seekp(place);
      file.put(static_cast<char>(byte ^ 0x55));
    }
    if (host.TryStart()) {
      (void)ListTenants(host);
      (void)CreateTenant(host, "new");
      EXPECT_EQ(host.Stop(), 0) << "byte " << at;
      continue;
    }
    ++refused;
    EXPECT_EQ(host.process().WaitExit(), 3) << "byte " << at << ": " << host.process().Log();
    EXPECT_NE(host.process().Log().find("fleet.db"), std::string::npos) << host.process().Log();
    EXPECT_NE(host.process().Log().find("restore it from a backup"), std::string::npos)
        << "byte " << at << ": " << host.process().Log();
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace rocegw::testing
