"""CSV files of single commands: no record swallows another."""

import csv
import io

import pytest

from lastbit.cli.files import csv_records, numbers_of
from lastbit.errors import InvalidParameter
from tests.cli.running import refused

WRONG = ['3,5,"x', '3,5,x"y', '3,5,"x"y', ' "3",5,x']


@pytest.mark.parametrize("row", WRONG)
def test_a_quote_out_of_place_has_the_file_refused(tmp_path, row):
    """Python's csv reads the row after `3,5,"x` as part of it, and says nothing."""
    path = tmp_path / "x.csv"
    path.write_text(f'id,v,name\n1,2,a\n{row}\n4,6,b\n5,7,"c"\n')
    with pytest.raises(InvalidParameter, match="quote"):
        numbers_of(path, "v")
    told = refused("median", str(path), "v", "--lower", "0", "--upper", "9", "--epsilon", "1")
    assert "quote" in told and row not in told
    refused("geo", str(path), "--epsilon", "ln(4)/200m", "--out", str(tmp_path / "out.csv"))


def test_what_is_well_formed_is_read_as_before(tmp_path):
    text = '\ufeffid,v\r\n1,"2"\r\n\r\n"3\n,""",4\r'
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    known = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    assert csv_records(path, "--file") == [(known.line_num, row) for row in known if row]
    assert numbers_of(path, "v") == [2.0, 4.0]
