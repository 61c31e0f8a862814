// What a tool does by JDBC: metadata, then the walk of test_sqlport_clients.py.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class SqlClient {
  public static void main(String[] told) throws Exception {
    Properties who = new Properties();
    who.put("user", told[1]);
    who.put("password", told[2]);
    who.put("options", "-c lastbit.epsilon=0.5");
    try (Connection line = DriverManager.getConnection(told[0], who)) {
      metadata(line.getMetaData());
      String question = told[3].replace("> 15", "> ?");
      asked(line, "preview", "EXPLAIN " + question);
      asked(line, "row", question);
      asked(line, "again", question);
      refused(line, "refused", "SELECT * FROM visits");
      refused(line, "exhausted", "SET lastbit.epsilon = '1000'; " + told[3].replace("15", "16"));
    }
  }

  static void metadata(DatabaseMetaData known) throws SQLException {
    ResultSet tables = known.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"});
    while (tables.next()) {
      System.out.println("table: " + tables.getString(3));
    }
    List<String> columns = new ArrayList<>();
    ResultSet column = known.getColumns(null, "public", "visits", "%");
    while (column.next()) {
      columns.add(column.getString(4) + " " + column.getString(6));
    }
    System.out.println("columns: " + String.join(", ", columns));
    int keys = 0;
    for (ResultSet found : List.of(
        known.getPrimaryKeys(null, "public", "visits"),
        known.getImportedKeys(null, "public", "visits"),
        known.getIndexInfo(null, "public", "visits", false, false))) {
      while (found.next()) {
        keys++;
      }
    }
    System.out.println("keys: " + keys);
    known.getSchemas();
    known.getCatalogs();
    known.getTypeInfo();
  }

  static void asked(Connection line, String name, String sql) throws SQLException {
    PreparedStatement asked = line.prepareStatement(sql);
    asked.setDouble(1, 15);
    ResultSet rows = asked.executeQuery();
    int width = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      System.out.println(name + ": " + rows.getString(1) + (width > 1 ? "|" + rows.getLong(2) : ""));
    }
    if (asked.getWarnings() != null) {
      System.out.println("notice: " + asked.getWarnings().getMessage());
    }
  }

  static void refused(Connection line, String name, String sql) throws SQLException {
    try (Statement asked = line.createStatement()) {
      asked.execute(sql);
    } catch (SQLException wrong) {
      System.out.println(name + ": " + wrong.getSQLState() + " " + wrong.getMessage());
    }
  }
}
