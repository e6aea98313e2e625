// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/table.h"

#include <gtest/gtest.h>

namespace rocegw::cli {
namespace {

TEST(Table, Columns_FitTheirContent) {
  Table table;
  table.AddColumn("NAME", Column::kLeft);
  table.AddColumn("N", Column::kRight);
  table.AddColumn("NOTE", Column::kCut);
  table.AddRow({"a", "100", "x"});
  table.AddRow({"longer", "7", ""});
  EXPECT_EQ(table.Text(80),
            "NAME      N  NOTE\n"
            "a       100  x\n"
            "longer    7\n");
}

TEST(Table, LimitReached_CutsTheMarkedColumns) {
  Table table;
  table.AddColumn("FIRST", Column::kCut);
  table.AddColumn("N", Column::kRight);
  table.AddColumn("LAST", Column::kCut);
  table.AddRow({"abcdefghijklmnop", "1", "0123456789abcdef"});
  EXPECT_EQ(table.Text(30),
            "FIRST             N  LAST\n"
            "abcdefghijklmnop  1  0123456..\n");
  // The last column keeps six characters, then the one before is truncated.
  EXPECT_EQ(table.Text(20),
            "FIRST      N  LAST\n"
            "abcdefg..  1  0123..\n");
  EXPECT_EQ(table.Text(0),
            "FIRST             N  LAST\n"
            "abcdefghijklmnop  1  0123456789abcdef\n");
}

TEST(Table, ControlCharactersInCells_AreEscaped) {
  Table table;
  table.AddColumn("NAME", Column::kLeft);
  table.AddRow({"a\x1b[31m\n"});
  EXPECT_EQ(table.Text(80), "NAME\na\\x1b[31m\\x0a\n");
}

TEST(Table, CharactersOfSeveralBytes_CountOnce) {
  Table table;
  table.AddColumn("NAME", Column::kLeft);
  table.AddColumn("NOTE", Column::kCut);
  table.AddRow({"k\u00f6der", "\u6570\u636e\u6570\u636e\u6570\u636e\u6570\u636e"});
  table.AddRow({"b", "x"});
  EXPECT_EQ(table.Text(14),
            "NAME   NOTE\n"
            "k\u00f6der  \u6570\u636e\u6570\u636e\u6570..\n"
            "b      x\n");
}

TEST(Table, Bytes_AreShort) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(1023), "1023");
  EXPECT_EQ(BytesText(1024), "1.0KiB");
  EXPECT_EQ(BytesText(3u << 19), "1.5MiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16.0EiB");
}

TEST(Table, Ages_AreShort) {
  EXPECT_EQ(AgeText(-5), "0s");
  EXPECT_EQ(AgeText(59), "59s");
  EXPECT_EQ(AgeText(65), "1m05s");
  EXPECT_EQ(AgeText(3600 * 4 + 60 * 7), "4h07m");
  EXPECT_EQ(AgeText(86400 * 2 + 3600 * 3), "2d03h");
}

}  // namespace
}  // namespace rocegw::cli
