// SPDX-License-Identifier: Apache-2.0
// `inspect --separation` and `generate --separate` as a user meets them; the curves of docs/epsilon.md.
#include <filesystem>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include "conformance/json.hpp"
#include "harness/program_output.hpp"

namespace qkcts {
namespace {

class SeparationCli : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    corpus = path("eps.h5");
    // A part of what docs/epsilon.md is made from.
    const ProgramOutput made = qkcts(
        "generate --contract clause_eps_inside_root,clause_l2_inside_root --family eps_ladder --eps 1e-6 --format "
        "binary32,bfloat16 --shape 1,1,1,34,1,128,8 -o " +
        corpus);
    ASSERT_EQ(made.code, 0) << made.out << made.err;
  }

  static inline std::string corpus;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(SeparationCli, TheTableOfACorpusIsTextCsvOrJson) {
  const ProgramOutput text = qkcts("inspect " + corpus + " --separation");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("q_norm.root=outside_root"), std::string::npos) << text.out;

  const ProgramOutput csv = qkcts("inspect " + corpus + " --separation --format csv");
  EXPECT_EQ(csv.code, 0) << csv.err;
  const std::vector<std::string> lines = lines_of(csv.out);
  ASSERT_GE(lines.size(), 1000U);
  EXPECT_EQ(lines[0], "case,contract,family,format,q_eps,smallest_q_rms,neighbour,stage,profile,separation,row,column");

  const ProgramOutput json = qkcts("inspect " + corpus + " --separation --format json");
  EXPECT_EQ(json.code, 0) << json.err;
  const Json table = parse_json(json.out, "output");
  ASSERT_EQ(table.size(), lines.size() - 1);
  for (const Json& entry : table) {
    EXPECT_EQ(entry.at("family"), "eps_ladder");
    EXPECT_EQ(entry.at("q_eps"), 1e-6);
    EXPECT_LT(entry.at("smallest_q_rms"), 1e-4);
  }
  const ProgramOutput some = qkcts("inspect " + corpus + " --separation --format csv --contract 'clause_l2*'");
  EXPECT_LT(lines_of(some.out).size(), lines.size());
  const ProgramOutput none = qkcts("inspect " + corpus + " --separation --format json --contract nothing");
  EXPECT_EQ(none.out, "[]\n");
}

// The figures of docs/epsilon.md for eps = 1e-6: up to which sqrt(t/eps) a misplaced epsilon is seen.
TEST_F(SeparationCli, TheCurvesSayWhatTheDocumentSays) {
  const ProgramOutput csv = qkcts("inspect " + corpus + " --separation --by-row --format csv");
  EXPECT_EQ(csv.code, 0) << csv.err;
  const auto seen_up_to = [&](const std::string& contract, const std::string& format, const std::string& neighbour,
                              const std::string& profile) {
    double last = 0;
    for (const std::string& line : lines_of(csv.out)) {
      std::vector<std::string> cells;
      std::istringstream stream(line);
      for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
      if (cells.size() != 10 || cells[1].rfind(contract, 0) != 0 || cells[3] != format || cells[5] != neighbour ||
          cells[6] != profile)
        continue;
      if (std::stod(cells[9]) > 1) last = std::stod(cells[8]);
    }
    return last;
  };
  const std::string document = read_text_file(QKCTS_SOURCE_DIR "/docs/epsilon.md");
  int rows = 0;
  for (const std::string& line : lines_of(document)) {
    // | clause_eps_inside_root | binary32 | f32 | q_norm.root=outside_root | 245.1 |
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '|');) {
      const std::size_t from = cell.find_first_not_of(' ');
      if (from != std::string::npos) cells.push_back(cell.substr(from, cell.find_last_not_of(' ') - from + 1));
    }
    if (cells.size() != 5 || cells[0].rfind("clause_", 0) != 0) continue;
    if (cells[0] == "clause_layer_norm_two_pass" || cells[1] == "binary16") continue;  // not made here
    ++rows;
    EXPECT_NEAR(seen_up_to(cells[0], cells[1], cells[3], cells[2]) / std::stod(cells[4]), 1, 1e-3) << line;
  }
  EXPECT_GE(rows, 12);
}

TEST_F(SeparationCli, TheDrawingIsOneFile) {
  const std::string file = path("eps.svg");
  const ProgramOutput drawn = qkcts("inspect " + corpus + " --separation --svg " + file);
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  const std::string svg = read_text_file(file);
  EXPECT_EQ(svg.rfind("<svg xmlns", 0), 0U);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  for (const char* part : {"rms, binary32 (f32)", "l2, bfloat16 (bf16_f32acc)", "eps outside root", "without eps"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  for (const char* outside : {"http://www.w3.org/1999/xlink", "<script", "href"})
    EXPECT_EQ(svg.find(outside), std::string::npos) << outside;
  // A row of zeros has no place on a scale of logarithms.
  const std::string zeros = path("zeros.h5");
  ASSERT_EQ(qkcts("generate --contract qwen3_rmsnorm --family eps_edge --format bfloat16 --eps 1e-8 -o " + zeros).code,
            0);
  EXPECT_EQ(qkcts("inspect " + zeros + " --separation --svg " + path("zeros.svg")).code, 0);
  EXPECT_LT(std::filesystem::file_size(path("zeros.svg")), 100000U);
  const ProgramOutput nothing = qkcts("inspect " + corpus + " --separation --contract nothing --svg " + file);
  EXPECT_EQ(nothing.code, 3);
  EXPECT_NE(nothing.err.find("no case to draw"), std::string::npos) << nothing.err;
  EXPECT_EQ(read_text_file(file), svg) << "the old file stays";
}

TEST_F(SeparationCli, ASearchWritesACaseThatTellsMore) {
  const std::string file = path("apart.h5");
  const std::string search =
      "generate --separate clause_eps_inside_root clause_eps_outside_root --stage q_norm --shape 1,2,1,3,4,8,6 --steps "
      "30 -o " +
      file;
  const ProgramOutput found = qkcts(search);
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.out.find("step     0"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find(" improvements in 30 steps"), std::string::npos) << found.out;
  EXPECT_EQ(qkcts("verify --all " + file).code, 0);
  const std::string digest = found.out.substr(found.out.find("digest "));
  EXPECT_EQ(qkcts(search).out.find(digest) != std::string::npos, true) << "the same for a seed and a number of steps";
  EXPECT_EQ(qkcts(search + " --seed 5").out.find(digest), std::string::npos);
  const ProgramOutput unlike = qkcts("generate --separate plain_sdpa henry2020_l2_cross -o " + file);
  EXPECT_EQ(unlike.code, 3) << unlike.out;
  EXPECT_NE(unlike.err.find("do not take the same inputs"), std::string::npos) << unlike.err;
}

TEST_F(SeparationCli, ACaseShowsItsStatistics) {
  const ProgramOutput shown = qkcts("inspect " + corpus + " l2_inside_root_eps_1em06/eps_ladder/binary32");
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* expected : {"entropy (nat)", "p_max", "max |s|", "max p (1 - p)"})
    EXPECT_NE(shown.out.find(expected), std::string::npos) << expected << "\n" << shown.out;
}

}  // namespace
}  // namespace qkcts
