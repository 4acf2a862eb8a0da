"""Names of C++ functions, as people write them."""
from specs import SpecTest
from workshop import build


class CxxNames(SpecTest):
    def expect(self, spec, count, kind="-k", flags=("-O1", "-g")):
        path = build("cxx_names", *flags, compiler="g++")
        self.assertEqual(sum(self.count_of(path, spec, kind).values()), count, spec)

    def test_cxx_with_parameters(self):
        self.expect("shop::Till::add(int)", 3)
        self.expect("shop::Till::add(char const*)", 2)
        self.expect("shop::Till::add(const char *)", 2)

    def test_cxx_without_parameters(self):
        self.expect("shop::Till::add", 5)

    def test_cxx_operators(self):
        self.expect("operator+", 2)
        self.expect("operator+(shop::Money const&, long)", 2)
        self.expect("shop::operator+", 1)
        self.expect("shop::Till::operator()", 4)

    def test_cxx_constructors(self):
        self.expect("shop::Till::Till", 2)
        self.expect("shop::Till::~Till", 2)

    def test_cxx_virtual(self):
        self.expect("shop::Till::total", 1, kind="-r")
        self.expect("shop::Till::total() const", 1)

    def test_cxx_templates(self):
        self.expect("shop::largest<int>", 2)
        self.expect("shop::largest<double>", 1)
        self.expect("shop::largest", 3)
        self.expect("shop::largest<*>", 3)

    def test_cxx_anonymous_namespace(self):
        self.expect("hidden", 5)
        self.expect("(anonymous namespace)::hidden", 5)

    def test_cxx_mangled(self):
        self.expect("_ZN4shop4Till3addEi", 3)

    def test_cxx_globs(self):
        self.expect("shop::Till::add*", 5)
        self.expect("cxx_names:shop::Till::a*", 5)

    def test_cxx_without_debug_information(self):
        self.expect("shop::Till::add(int)", 3, flags=("-O1",))
        self.expect("shop::Till::operator()", 4, flags=("-O1",))
